-- The time by which old figures go. It follows the clock, forward at a bounded pace.
alter table clock add column pruned integer;
