//! The whole contract of a transport, in one line.

adapm_verify::transport_suite!(channels, plug_in_transport::network);
