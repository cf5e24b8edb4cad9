//! Published figures and reference runs against this build.
