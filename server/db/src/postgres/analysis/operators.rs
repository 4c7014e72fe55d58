//! Operators of PostgreSQL whose meaning is known. The oids are in `pg_operator.dat`, and the same
//! in every version.

use crate::postgres::catalog::types;
use crate::precision::{Arithmetic, ValueClass};

pub(super) fn equality(operator: u32) -> Option<ValueClass> {
    match operator {
        // Each of int2, int4 and int8 with each.
        94 | 532 | 1862 | 533 | 96 | 15 | 1868 | 416 | 410 => Some(ValueClass::Integer),
        98 => Some(ValueClass::Text),
        2972 => Some(ValueClass::Uuid),
        91 => Some(ValueClass::Boolean),
        _ => None,
    }
}

/// `=` of `name`, float4, float8, `char(n)`, date, time, timestamptz, numeric, bytea, timestamp and
/// enums.
pub(super) const OTHERS: [u32; 11] = [93, 620, 670, 1054, 1093, 1108, 1320, 1752, 1955, 2060, 3516];

/// True if the operator is `=` of a common type.
pub(super) fn is_equality(operator: u32) -> bool {
    equality(operator).is_some() || OTHERS.contains(&operator)
}

/// Returns what an operator computes of two integers.
pub(super) fn arithmetic(operator: u32) -> Option<Arithmetic> {
    match operator {
        // Each of int2, int4 and int8 with each.
        550 | 551 | 552 | 553 | 684 | 688 | 692 | 818 | 822 => Some(Arithmetic::Plus),
        554 | 555 | 556 | 557 | 685 | 689 | 693 | 819 | 823 => Some(Arithmetic::Minus),
        514 | 526 | 544 | 545 | 686 | 690 | 694 | 820 | 824 => Some(Arithmetic::Times),
        _ => None,
    }
}

/// True if an operand of the class may have values of this type.
pub(super) fn takes(class: ValueClass, type_oid: u32) -> bool {
    match class {
        ValueClass::Integer => matches!(type_oid, types::INT2 | types::INT4 | types::INT8),
        ValueClass::Text | ValueClass::Folded(_) => {
            matches!(type_oid, types::TEXT | types::VARCHAR)
        }
        ValueClass::Uuid => type_oid == types::UUID,
        ValueClass::Boolean => type_oid == types::BOOL,
    }
}
