//! Narrows the blocks of a query, from the outermost inwards.

use super::carry::Carrier;
use super::causes::causes;
use super::equalities::Equalities;
use super::model::{Block, BlockId, Model};
use super::values::{ColumnRestriction, ValueClass, Values};
use super::witness::{Witness, WitnessSource};
use crate::advice::Cause;

/// The values to which an output column of a block is restricted by what reads the block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moved {
    pub(crate) output: usize,
    pub(crate) class: ValueClass,
    pub(crate) values: Values,
}

impl Moved {
    /// Of the restriction of a reference to the block; none for the first rows.
    pub(crate) fn from(restriction: &ColumnRestriction) -> Option<Self> {
        let moves = !matches!(restriction.values, Values::First(_));
        Some(Self {
            output: restriction.column,
            class: restriction.class.filter(|_| moves)?,
            values: restriction.values.clone(),
        })
    }
}

/// Restrictions that were found for one block.
pub(crate) struct Narrowed {
    /// For each factor its restrictions, the best first. Each one alone is sufficient.
    pub(crate) found: Vec<Vec<ColumnRestriction>>,
    /// Why a factor has none, if so.
    pub(crate) causes: Vec<Cause>,
    /// For each factor the restriction that others may be narrowed by.
    pub(super) chosen: Vec<Option<ColumnRestriction>>,
    /// The blocks of semi-joins by whose rows factors are narrowed.
    sources: Vec<BlockId>,
    /// True within a semi-join by whose rows a factor around it is narrowed.
    is_source: bool,
}

/// Narrows each block of a query, of whose output rows only those count that have been `moved` into
/// it. What asks for the values of join keys is added to the witnesses.
pub(crate) fn narrow<W: WitnessSource>(
    model: &Model<W::Table>,
    moved: Vec<Moved>,
    source: &W,
    witnesses: &mut Vec<Witness>,
) -> Vec<Narrowed> {
    let mut waiting: Vec<Vec<Moved>> = vec![Vec::new(); model.blocks.len()];
    if let Some(outermost) = waiting.first_mut() {
        *outermost = moved;
    }
    let mut all: Vec<Option<Narrowed>> = Vec::new();
    all.resize_with(model.blocks.len(), || None);
    for id in in_order(model) {
        let block = &model.blocks[id];
        let moved = std::mem::take(&mut waiting[id]);
        let parent = block.parent.and_then(|parent| all[parent].as_ref());
        let is_source =
            parent.is_some_and(|parent| parent.is_source || parent.sources.contains(&id));
        let (narrowed, inward) =
            narrow_block(model, id, &moved, (&all, is_source), (source, witnesses));
        for (below, moved) in inward {
            waiting[below].push(moved);
        }
        for (factor, found) in block.factors.iter().zip(&narrowed.found) {
            if let Some(below) = factor.block.filter(|_| factor.owns_block) {
                waiting[below].extend(found.iter().filter_map(Moved::from));
            }
        }
        all[id] = Some(narrowed);
    }
    all.into_iter().flatten().collect()
}

/// Returns the blocks, each behind the one around it and the one whose factor owns it.
fn in_order<T>(model: &Model<T>) -> Vec<BlockId> {
    let blocks = &model.blocks;
    let mut before: Vec<Vec<BlockId>> = vec![Vec::new(); blocks.len()];
    for (id, block) in blocks.iter().enumerate() {
        before[id].extend(block.parent);
        for factor in block.factors.iter().filter(|factor| factor.owns_block) {
            if let Some(below) = factor.block {
                before[below].push(id);
            }
        }
    }
    let mut is_placed = vec![false; blocks.len()];
    let mut order = Vec::with_capacity(blocks.len());
    while order.len() < blocks.len() {
        let is_next =
            |id: &BlockId| !is_placed[*id] && before[*id].iter().all(|before| is_placed[*before]);
        // In a circle, which no query has, nothing would be next.
        let next = (0..blocks.len()).find(is_next);
        let Some(next) = next.or_else(|| is_placed.iter().position(|placed| !placed)) else {
            break;
        };
        is_placed[next] = true;
        order.push(next);
    }
    order
}

/// Narrows one block, behind those before it; returns it with what its semi-joins restrict inside.
fn narrow_block<W: WitnessSource>(
    model: &Model<W::Table>,
    id: BlockId,
    moved: &[Moved],
    (before, is_source): (&[Option<Narrowed>], bool),
    (source, witnesses): (&W, &mut Vec<Witness>),
) -> (Narrowed, Vec<(BlockId, Moved)>) {
    let block = &model.blocks[id];
    let inward = moved.iter().filter_map(|moved| {
        let column = block.passes(moved.output, moved.class)?;
        Some((column, moved.values.clone()))
    });
    let mut equalities = Equalities::of(model, id, inward);
    equalities.spread(|from| {
        let known = before[from.block].as_ref();
        let known = known.map(|block| block.found[from.column.factor].iter());
        let known = known.into_iter().flatten();
        known
            .filter(|known| !is_source || !known.values.are_witnessed())
            .collect()
    });
    let factors = block.factors.len();
    let mut carrier = Carrier {
        model,
        block: id,
        before,
        equalities,
        is_source,
        source,
        witnesses,
        chosen: vec![None; factors],
        closed: vec![false; factors],
        sources: Vec::new(),
        depth: 0,
        unindexed: Vec::new(),
    };
    carrier.choose();
    let inward = carrier.moved_into_semi_joins();
    carrier.pass_causes_on();
    let mut chosen = carrier.chosen.iter().flatten();
    let is_selected = chosen.any(|rows| rows.values.has_parameter());
    let mut causes = causes(block, is_selected);
    for (factor, cause) in carrier.unindexed {
        causes[factor] = cause;
    }
    let mut narrowed = Narrowed {
        found: carrier.equalities.found,
        chosen: carrier.chosen,
        sources: carrier.sources,
        causes,
        is_source,
    };
    move_into_arms(block, moved, &mut narrowed.found);
    (narrowed, inward)
}

/// Restricts the arms of a set operation.
fn move_into_arms<T>(block: &Block<T>, moved: &[Moved], found: &mut [Vec<ColumnRestriction>]) {
    for moved in moved {
        if !block.passes_arms(moved.output, moved.class) {
            continue;
        }
        for arm in found.iter_mut() {
            arm.push(ColumnRestriction {
                column: moved.output,
                class: Some(moved.class),
                values: moved.values.clone(),
            });
        }
    }
}
