-- The bound within which this share of the answers was given.
with counted as (
  select bound_us, sum(requests) as requests
  from duration
  where grain = 3600 and at >= :from and at < :till
  group by 1
), summed as (
  select
    bound_us, sum(requests) over (order by bound_us) as upto, sum(requests) over () as whole
  from counted
)
select json_object(
  'share', share.value,
  'us', (select min(bound_us) from summed where upto >= share.value * whole)
)
from json_each('[0.5, 0.75, 0.9, 0.95, 0.99, 0.999]') share
where exists (select 1 from summed)
order by share.value
