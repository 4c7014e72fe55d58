//! Doubly linked lists whose nodes live in one vector, linked by index.
//!
//! A node is in at most one list. The caller knows which; unlinking from another list is a logic
//! error that corrupts the order of the lists, never memory.

use std::ops::{Index, IndexMut};

const NIL: u32 = u32::MAX;

struct Node<T> {
    item: T,
    prev: u32,
    next: u32,
}

#[cfg(test)]
/// Bytes that a node with a `T` takes.
pub(super) const fn node_size<T>() -> usize {
    size_of::<Node<T>>()
}

/// The nodes of any number of lists. Free ones are kept for the next insertion.
pub(super) struct Slab<T> {
    nodes: Vec<Node<T>>,
    free: u32,
}

impl<T: Default> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NIL,
        }
    }

    /// A node for `item`, in no list. Its index is never `u32::MAX`.
    pub(super) fn insert(&mut self, item: T) -> u32 {
        let node = Node {
            item,
            prev: NIL,
            next: NIL,
        };
        if self.free != NIL {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            return index;
        }
        let index = u32::try_from(self.nodes.len())
            .ok()
            .filter(|&index| index != NIL);
        let index = index.expect("four thousand million nodes need more memory than there is");
        self.nodes.push(node);
        index
    }

    /// Frees a node that is in no list.
    pub(super) fn remove(&mut self, index: u32) -> T {
        let node = &mut self.nodes[index as usize];
        node.next = self.free;
        self.free = index;
        std::mem::take(&mut node.item)
    }

    /// Nodes, free ones too.
    pub(super) fn len(&self) -> u32 {
        // No index is as large as `u32::MAX`.
        self.nodes.len() as u32
    }

    fn node(&mut self, index: u32) -> &mut Node<T> {
        &mut self.nodes[index as usize]
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.nodes[index as usize].item
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.nodes[index as usize].item
    }
}

/// One list, first in, first out, with removal from the middle.
pub(super) struct List {
    front: u32,
    back: u32,
    len: usize,
}

impl List {
    pub(super) fn new() -> Self {
        Self {
            front: NIL,
            back: NIL,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a node that is in no list.
    pub(super) fn push_back<T: Default>(&mut self, slab: &mut Slab<T>, index: u32) {
        let back = std::mem::replace(&mut self.back, index);
        let node = slab.node(index);
        (node.prev, node.next) = (back, NIL);
        match back {
            NIL => self.front = index,
            _ => slab.node(back).next = index,
        }
        self.len += 1;
    }

    pub(super) fn pop_front<T: Default>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
        let front = self.front;
        if front == NIL {
            return None;
        }
        self.unlink(slab, front);
        Some(front)
    }

    /// Takes a node of this list out of it.
    pub(super) fn unlink<T: Default>(&mut self, slab: &mut Slab<T>, index: u32) {
        let node = slab.node(index);
        let (prev, next) = (node.prev, node.next);
        (node.prev, node.next) = (NIL, NIL);
        match prev {
            NIL => self.front = next,
            _ => slab.node(prev).next = next,
        }
        match next {
            NIL => self.back = prev,
            _ => slab.node(next).prev = prev,
        }
        self.len -= 1;
    }

    /// The nodes' indices in order.
    #[cfg(test)]
    pub(super) fn iter<'a, T: Default>(&self, slab: &'a Slab<T>) -> impl Iterator<Item = u32> + 'a {
        let first = (self.front != NIL).then_some(self.front);
        std::iter::successors(first, |&index| {
            Some(slab.nodes[index as usize].next).filter(|&next| next != NIL)
        })
    }
}
