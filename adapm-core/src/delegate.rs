//! The macro that passes the methods of a store on to the store inside of it.
//!
//! Not here: the contract ([`crate::store::Store`]).

/// Implements the methods of [`Store`](crate::store::Store) by those of a field: all, or all but
/// the named ones, which are written beside.
///
/// A wrapper that lists the methods it passes on misses those with a default, and those added
/// later: it stays correct, and becomes slow. The associated type is not delegated: write `type
/// Value` beside.
///
/// A wrapper that acts on *entering slots* writes four methods, as each of them enters on its own:
/// `with_slot`, `push`, `reserve_each` and `visit`.
///
/// ```
/// use std::cell::Cell;
///
/// use adapm_core::slot::{Pushed, Slot};
/// use adapm_core::store::Store;
/// use adapm_core::{Key, Layout};
/// use adapm_verify::ReferenceStore;
///
/// /// Counts pushes.
/// struct Counting {
///     inner: ReferenceStore<f32>,
///     pushes: Cell<u64>,
/// }
///
/// impl Store for Counting {
///     type Value = f32;
///
///     fn push(&self, key: Key, update: &[f32]) -> Pushed {
///         self.pushes.set(self.pushes.get() + 1);
///         self.inner.push(key, update)
///     }
///
///     adapm_core::delegate_store!(self.inner, all but push);
/// }
/// # let inner = ReferenceStore::new(&Layout::dense(&[(3, 2)])?);
/// # let store = Counting { inner, pushes: Cell::new(0) };
/// # store.reserve(Key(1), false);
/// # assert_eq!((store.push(Key(1), &[0.5; 2]), store.pushes.get()), (Pushed::Refused, 1));
/// # store.with_slot(Key(1), |slot| assert_eq!(slot.value.len(), 2));
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
///
/// An unknown name does not compile, nor does a method that is written beside without being named:
///
/// ```compile_fail
/// # struct Wrapper(adapm_verify::ReferenceStore<f32>);
/// impl adapm_core::store::Store for Wrapper {
///     type Value = f32;
///     adapm_core::delegate_store!(self.0, all but pusch);
/// }
/// ```
#[macro_export]
macro_rules! delegate_store {
    ($self:ident . $($field:tt).+ $(, all but $($own:ident),+)? $(,)?) => {
        $($($crate::delegate_store!(@known $own);)+)?
        $crate::delegate_store!(@all $self [$self.$($field).+] [$($($own)+)?]);
    };
    (@all $self:ident $inner:tt $own:tt) => {
        $crate::delegate_store!(@one $self $inner value_len $own);
        $crate::delegate_store!(@one $self $inner with_slot $own);
        $crate::delegate_store!(@one $self $inner push $own);
        $crate::delegate_store!(@one $self $inner reserve $own);
        $crate::delegate_store!(@one $self $inner release $own);
        $crate::delegate_store!(@one $self $inner reserve_each $own);
        $crate::delegate_store!(@one $self $inner visit $own);
        $crate::delegate_store!(@one $self $inner look $own);
        $crate::delegate_store!(@one $self $inner is_held $own);
        $crate::delegate_store!(@one $self $inner prefetch $own);
        $crate::delegate_store!(@one $self $inner prefetch_entry $own);
        $crate::delegate_store!(@one $self $inner prefetch_guess $own);
    };
    // A method that none of the names excludes.
    (@one $self:ident [$($inner:tt)+] value_len []) => {
        #[inline]
        fn value_len(&$self, key: $crate::Key) -> usize {
            $crate::store::Store::value_len(&$($inner)+, key)
        }
    };
    (@one $self:ident [$($inner:tt)+] with_slot []) => {
        #[inline]
        fn with_slot<R>(
            &$self,
            key: $crate::Key,
            f: impl FnOnce($crate::slot::Slot<'_, Self::Value>) -> R,
        ) -> R {
            $crate::store::Store::with_slot(&$($inner)+, key, f)
        }
    };
    (@one $self:ident [$($inner:tt)+] push []) => {
        #[inline]
        fn push(&$self, key: $crate::Key, update: &[Self::Value]) -> $crate::slot::Pushed {
            $crate::store::Store::push(&$($inner)+, key, update)
        }
    };
    (@one $self:ident [$($inner:tt)+] reserve []) => {
        #[inline]
        fn reserve(&$self, key: $crate::Key, with_delta: bool) {
            $crate::store::Store::reserve(&$($inner)+, key, with_delta);
        }
    };
    (@one $self:ident [$($inner:tt)+] release []) => {
        #[inline]
        fn release(&$self, key: $crate::Key) {
            $crate::store::Store::release(&$($inner)+, key);
        }
    };
    (@one $self:ident [$($inner:tt)+] reserve_each []) => {
        #[inline]
        fn reserve_each(
            &$self,
            keys: &[$crate::Key],
            f: impl FnMut($crate::Key, $crate::slot::Slot<'_, Self::Value>),
        ) {
            $crate::store::Store::reserve_each(&$($inner)+, keys, f);
        }
    };
    (@one $self:ident [$($inner:tt)+] visit []) => {
        #[inline]
        fn visit(
            &$self,
            keys: ::core::ops::Range<$crate::Key>,
            f: impl FnMut($crate::Key, $crate::slot::Slot<'_, Self::Value>),
        ) {
            $crate::store::Store::visit(&$($inner)+, keys, f);
        }
    };
    (@one $self:ident [$($inner:tt)+] look []) => {
        #[inline]
        fn look(&$self, key: $crate::Key) -> $crate::store::Look {
            $crate::store::Store::look(&$($inner)+, key)
        }
    };
    (@one $self:ident [$($inner:tt)+] is_held []) => {
        #[inline]
        fn is_held(&$self, key: $crate::Key) -> bool {
            $crate::store::Store::is_held(&$($inner)+, key)
        }
    };
    (@one $self:ident [$($inner:tt)+] prefetch []) => {
        #[inline]
        fn prefetch(&$self, key: $crate::Key) {
            $crate::store::Store::prefetch(&$($inner)+, key);
        }
    };
    (@one $self:ident [$($inner:tt)+] prefetch_entry []) => {
        #[inline]
        fn prefetch_entry(&$self, key: $crate::Key) {
            $crate::store::Store::prefetch_entry(&$($inner)+, key);
        }
    };
    (@one $self:ident [$($inner:tt)+] prefetch_guess []) => {
        #[inline]
        fn prefetch_guess(&$self, key: $crate::Key) {
            $crate::store::Store::prefetch_guess(&$($inner)+, key);
        }
    };
    // This name excludes it, or the next one may.
    (@one $self:ident $inner:tt value_len [value_len $($own:ident)*]) => {};
    (@one $self:ident $inner:tt with_slot [with_slot $($own:ident)*]) => {};
    (@one $self:ident $inner:tt push [push $($own:ident)*]) => {};
    (@one $self:ident $inner:tt reserve [reserve $($own:ident)*]) => {};
    (@one $self:ident $inner:tt release [release $($own:ident)*]) => {};
    (@one $self:ident $inner:tt reserve_each [reserve_each $($own:ident)*]) => {};
    (@one $self:ident $inner:tt visit [visit $($own:ident)*]) => {};
    (@one $self:ident $inner:tt look [look $($own:ident)*]) => {};
    (@one $self:ident $inner:tt is_held [is_held $($own:ident)*]) => {};
    (@one $self:ident $inner:tt prefetch [prefetch $($own:ident)*]) => {};
    (@one $self:ident $inner:tt prefetch_entry [prefetch_entry $($own:ident)*]) => {};
    (@one $self:ident $inner:tt prefetch_guess [prefetch_guess $($own:ident)*]) => {};
    (@one $self:ident $inner:tt $method:ident [$other:ident $($own:ident)*]) => {
        $crate::delegate_store!(@one $self $inner $method [$($own)*]);
    };
    (@known value_len) => {};
    (@known with_slot) => {};
    (@known push) => {};
    (@known reserve) => {};
    (@known release) => {};
    (@known reserve_each) => {};
    (@known visit) => {};
    (@known look) => {};
    (@known is_held) => {};
    (@known prefetch) => {};
    (@known prefetch_entry) => {};
    (@known prefetch_guess) => {};
    (@known $other:ident) => {
        ::core::compile_error!(::core::concat!(
            "`", ::core::stringify!($other), "` is no method of `Store`"
        ));
    };
}
