//! The command line: argument forms, output, exit codes.
