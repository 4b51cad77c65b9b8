//! The whole contract of a transport, in one line.

adapm_verify::transport_suite!(plug_in_transport::network);
