//! The verb `check-net`: what the ways between the processes are like, over the transport that a run would use.
//!
//! [`probe`] measures, [`matrix`] shows. Not here: anything of parameters; a run is slower than the network alone.

mod matrix;
mod probe;

use std::fmt;

use adapm_core::transport::{Farewell, Transport as _};
use adapm_transport::net::{Address, Net, NetError};

use crate::args::CheckNetArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::measure::check_net::matrix::Matrix;
use crate::measure::check_net::probe::{Probe, ProbeError};
use crate::output::Output;
use crate::processes::{self, Company};
use crate::progress::Screen;

/// Measures every pair of processes, one after the other, and prints what came out on node 0.
pub(crate) fn run(args: &CheckNetArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    processes::with(
        &args.processes,
        args.nodes,
        interrupt,
        || Ok(()),
        |processes| {
            let company = processes.company().ok_or(Failure::NoProcesses)?;
            let output = processes.output(args.json);
            let mut net = connect(company)?;
            let measured = measure(args, company, &mut net, output, interrupt);
            net.leave(if measured.is_ok() { Farewell::Finished } else { Farewell::Failed });
            let nodes = company.group.nodes();
            match measured? {
                Some(matrix) => {
                    let transport = company.config.kind.scheme();
                    output.text(&format!("\n{}", matrix.text(nodes, output)))?;
                    output.object(&matrix.report(nodes, transport))
                }
                None => Ok(()),
            }
        },
    )
}

/// An endpoint of this process that knows where the others are; links come up as they are used.
fn connect(company: &Company) -> Result<Net, Failure> {
    let group = &company.group;
    let refused = |error: NetError| Failure::Between(1, error.to_string());
    let mut net = group.listen(CHANNEL, 0).map_err(refused)?;
    let own = group.address_of(&net).to_string();
    let all = group.all_gather_for("check-net", own.as_bytes()).map_err(Failure::Group)?;
    let address =
        |bytes: &Vec<u8>| std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Address>().ok());
    let addresses: Vec<Option<Address>> = all.iter().map(address).collect();
    net.connect(&addresses);
    Ok(net)
}

/// Measures as node 0, or answers as another one.
fn measure(
    args: &CheckNetArgs,
    company: &Company,
    net: &mut Net,
    output: Output,
    interrupt: &Interrupt,
) -> Result<Option<Matrix>, Failure> {
    let (node, nodes) = (company.group.node(), company.group.nodes());
    let mut probe = Probe::new(net, node, nodes, interrupt.stop()).patient(company.group.join_timeout());
    if node.index() > 0 {
        return ended(probe.follow()).map(|()| None);
    }
    let pairs = nodes * (nodes - 1);
    let slice = args.seconds / u32::try_from(pairs).unwrap_or(u32::MAX).max(1);
    let screen = Screen::new("check-net", output, interrupt);
    screen.waiting("measuring");
    let mut matrix = Matrix::default();
    let led = probe.lead(slice, |from, to, measured| {
        matrix.push(from, to, measured);
        screen.waiting(&format!("measuring: {} of {pairs} links", matrix.len()));
    });
    screen.finish()?;
    ended(led)?;
    Ok((matrix.len() == pairs).then_some(matrix))
}

/// The end of a measurement, which one that was stopped has reached too: the exit code tells.
fn ended<E: fmt::Display>(result: Result<(), ProbeError<E>>) -> Result<(), Failure> {
    match result {
        Ok(()) | Err(ProbeError::Stopped) => Ok(()),
        Err(error @ (ProbeError::Lost { .. } | ProbeError::Silent { .. })) => {
            Err(Failure::Between(75, error.to_string()))
        }
        Err(error @ (ProbeError::Transport(_) | ProbeError::Odd { .. })) => {
            Err(Failure::Between(1, error.to_string()))
        }
    }
}

/// No run that a process could take this one for uses it.
const CHANNEL: u16 = u16::MAX - 1;
