delete from sample where (grain, at) in (
  select s.grain, s.at from grain g join sample s on s.grain = g.seconds and s.at < (select pruned from clock) - g.keep
  order by s.grain, s.at limit 120
)
