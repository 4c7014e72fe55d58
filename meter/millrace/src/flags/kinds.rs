//! The kinds of flags that rows of the table are made of.

use clap::{Arg, ArgAction};
use millrace_client::Plan;

use super::Given;
use crate::commands::values;
use crate::failure::CommandResult;

/// A flag without a value.
pub(super) fn switch(arg: Arg) -> Arg {
    arg.action(ArgAction::SetTrue)
}

/// A flag whose value is a length of time.
pub(super) fn time(arg: Arg) -> Arg {
    arg.value_name("TIME").value_parser(values::duration)
}

/// A flag that `-h` leaves out.
pub(super) fn seldom(arg: Arg) -> Arg {
    arg.hide_short_help(true)
}

/// Sets one field if the flag has a value.
pub(super) fn set<T>(field: &mut T, value: Option<T>) -> CommandResult {
    if let Some(value) = value {
        *field = value;
    }
    Ok(())
}

/// Sets one field.
pub(super) fn put<T>(field: &mut T, value: T) -> CommandResult {
    *field = value;
    Ok(())
}

/// For a flag that sets nothing in the plan.
pub(super) fn nothing(_: &mut Plan, _: &Given<'_>) -> CommandResult {
    Ok(())
}
