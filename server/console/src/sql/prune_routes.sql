delete from route_sample where (grain, at, route) in (
  select s.grain, s.at, s.route
  from route_grain g join route_sample s on s.grain = g.seconds and s.at < (select pruned from clock) - g.keep
  order by s.grain, s.at limit 2000
)
