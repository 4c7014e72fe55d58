//! The joins of a FROM clause: which factors their conditions restrict.

use std::collections::BTreeSet;

use sqlparser::ast::{Expr, JoinConstraint, JoinOperator, Select};

pub(super) enum JoinCondition<'s> {
    On(&'s Expr),
    /// By columns of the same name. The index is that of the join's right side.
    Using(usize),
}

/// Returns the conditions of joins, each with the factors that it restricts, of this number.
///
/// An inner join's ON is a part of the conjunction of WHERE if there is no RIGHT or FULL join. A
/// LEFT join's ON decides only which rows of its right side match.
pub(super) fn conditions(
    select: &Select,
    factors: usize,
) -> Vec<(JoinCondition<'_>, BTreeSet<usize>)> {
    let joins = select.from.iter().flat_map(|tables| &tables.joins);
    let only_left_joins = joins
        .into_iter()
        .all(|join| constraint(&join.join_operator).is_some_and(|(side, _)| side != Side::None));
    let mut found = Vec::new();
    let mut index = 0;
    for tables in &select.from {
        for join in &tables.joins {
            index += 1;
            let Some((side, constraint)) = constraint(&join.join_operator) else {
                continue;
            };
            let restricts = match side {
                Side::Both if only_left_joins => (0..factors).collect(),
                Side::Right => BTreeSet::from([index]),
                Side::Both | Side::None => BTreeSet::new(),
            };
            match constraint {
                JoinConstraint::On(on) => found.push((JoinCondition::On(on), restricts)),
                JoinConstraint::Using(_) => found.push((JoinCondition::Using(index), restricts)),
                _ => {}
            }
        }
        index += 1;
    }
    found
}

/// The side of a join that its condition restricts.
#[derive(PartialEq)]
enum Side {
    Both,
    Right,
    None,
}

/// Returns what a join restricts, and by what; none for joins that SQLite does not have.
fn constraint(operator: &JoinOperator) -> Option<(Side, &JoinConstraint)> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint) => Some((Side::Both, constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Some((Side::Right, constraint))
        }
        JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some((Side::None, constraint)),
        _ => None,
    }
}
