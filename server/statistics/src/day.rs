//! The figures of each day, on the clock of the log.

use crate::distinct::Distinct;
use crate::histogram::ResponseTimes;

/// Days that are kept apart: eleven years.
const MOST: usize = 4000;
pub(crate) const SECONDS: i64 = 86_400;
pub(crate) const MINUTES: usize = 1440;

/// The figures of a day.
#[derive(Clone, Debug, Default)]
pub(crate) struct DayFigures {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Requests by the first digit of their status.
    pub(crate) statuses: [u64; 10],
    /// Requests by the class of their agent.
    pub(crate) agents: [u64; 4],
    pub(crate) visitors: Distinct,
    /// Requests of each minute.
    pub(crate) minutes: Vec<u32>,
    pub(crate) times: ResponseTimes,
}

impl DayFigures {
    /// Requests of an hour.
    pub(crate) fn hour(&self, hour: usize) -> u64 {
        let minutes = &self.minutes[hour * 60..hour * 60 + 60];
        minutes.iter().copied().map(u64::from).sum()
    }

    fn merge(&mut self, other: Self, room: &mut usize) {
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        add_all(&mut self.statuses, &other.statuses);
        add_all(&mut self.agents, &other.agents);
        self.visitors.merge(other.visitors, room);
        for (count, more) in self.minutes.iter_mut().zip(other.minutes) {
            *count = count.saturating_add(more);
        }
        self.times.merge(&other.times);
    }
}

pub(crate) fn add_all(counts: &mut [u64], more: &[u64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more;
    }
}

/// The days of a log, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Days {
    /// Each day with its number from 1970.
    pub(crate) days: Vec<(i64, DayFigures)>,
    /// Place of the day that was asked for last.
    last: usize,
    /// Requests of further days than are kept apart.
    pub(crate) left_out: u64,
}

impl Days {
    /// The figures of a day, unless there are too many days.
    pub(crate) fn day(&mut self, number: i64) -> Option<&mut DayFigures> {
        let last = self.days.get(self.last);
        if last.is_none_or(|(last, _)| *last != number) {
            let place = self.days.binary_search_by_key(&number, |day| day.0);
            self.last = match place {
                Ok(place) => place,
                Err(_) if self.days.len() >= MOST => {
                    self.left_out += 1;
                    return None;
                }
                Err(place) => {
                    let minutes = vec![0; MINUTES];
                    let day = DayFigures {
                        minutes,
                        ..Default::default()
                    };
                    self.days.insert(place, (number, day));
                    place
                }
            };
        }
        Some(&mut self.days[self.last].1)
    }

    pub(crate) fn merge(&mut self, other: Self, room: &mut usize) {
        self.left_out += other.left_out;
        for (number, figures) in other.days {
            let requests = figures.requests;
            match self.day(number) {
                Some(day) => day.merge(figures, room),
                None => self.left_out += requests - 1,
            }
        }
    }

    /// The minutes with the most requests, by their numbers from 1970, with their counts.
    pub(crate) fn busiest_minutes(&self, top: usize) -> Vec<(i64, u32)> {
        let minutes = self.days.iter().flat_map(|(day, figures)| {
            let counts = figures.minutes.iter().copied().zip(0..);
            counts.map(move |(count, minute): (u32, i64)| (day * MINUTES as i64 + minute, count))
        });
        let mut minutes: Vec<(i64, u32)> = minutes.filter(|(_, count)| *count > 0).collect();
        minutes.sort_by_key(|(time, count)| (std::cmp::Reverse(*count), *time));
        minutes.truncate(top);
        minutes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_days_than_are_kept_are_counted() {
        let mut days = Days::default();
        for number in (0..MOST as i64 + 5).rev() {
            if let Some(day) = days.day(number) {
                day.requests += 1;
            }
        }
        assert_eq!((days.days.len(), days.left_out), (MOST, 5));
        assert!(days.days.is_sorted_by_key(|(number, _)| *number));
        let mut other = Days::default();
        other.day(-1).unwrap().requests = 7;
        other.day(10).unwrap().requests = 7;
        days.merge(other, &mut 0);
        assert_eq!((days.day(10).unwrap().requests, days.left_out), (8, 12));
    }
}
