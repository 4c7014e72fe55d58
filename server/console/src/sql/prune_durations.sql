delete from duration where (grain, at, bound_us) in (
  select d.grain, d.at, d.bound_us
  from route_grain g join duration d on d.grain = g.seconds and d.at < (select pruned from clock) - g.keep
  order by d.grain, d.at limit 2000
)
