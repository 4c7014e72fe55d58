-- A rule is a list: its name, its figure, the limit, whether a low value is bad, and how long it must
-- be broken before the alert begins, and kept before it is over.
with minute as (
  select
    sum(requests) as requests, sum(hits) as hits, sum(hits + misses + waits) as kept,
    sum(successes + redirects + client_errors + server_errors) as answers,
    sum(server_errors) as errors, sum(shed) as shed, max(feed_age_ms) as feed_age_ms,
    sum(cpu_ms) as cpu_ms, sum(span_ms) as span_ms
  from sample
  where grain = 10 and at > :now - 60 and at <= :now
), counted as (
  select bound_us, sum(requests) as requests
  from duration
  where grain = 60 and at > :now - 120 and at <= :now
  group by bound_us
), summed as (
  select
    bound_us, sum(requests) over (order by bound_us) as upto, sum(requests) over () as whole
  from counted
), figure (name, meaning, is_share, value) as (
  select 'hit_rate', 'pages from memory', 1, hits * 1.0 / nullif(kept, 0) from minute
  union all
  select
    'p99', 'time in which 99 of 100 are answered', 0,
    (select min(bound_us) / 1e6 from summed where upto * 100 >= whole * 99)
  union all
  select 'feed_age', 'age of the database’s feed', 0, feed_age_ms / 1e3 from minute
  union all
  select
    'errors', 'answers that are errors of the server', 1, errors * 1.0 / nullif(answers, 0)
  from minute
  union all
  select
    'refused', 'requests for which there was too much to do', 1,
    shed * 1.0 / nullif(requests, 0)
  from minute
  union all
  select
    'cores', 'cores at work for this server', 1, cpu_ms * 1.0 / nullif(span_ms * :cores, 0)
  from minute
  union all
  select
    'certificate', 'time until a certificate ends', 0, (select min(ends_at) - :now from certificate)
), held as (
  -- Without requests there is nothing to complain of.
  select
    r.value ->> 0 as rule, r.value ->> 4 as lasts, f.*,
    coalesce(
      case
        when r.value ->> 3 then f.value < (r.value ->> 2) / case when f.is_share then 1e6 else 1e3 end
        else f.value > (r.value ->> 2) / case when f.is_share then 1e6 else 1e3 end
      end, 0
    ) as is_broken
  from json_each(:rules) r join figure f on f.name = r.value ->> 1
), turning as (
  -- A machine that slept has seen nothing.
  select
    h.*, a.contrary_ms + min(:passed, 60000) as contrary,
    a.is_on <> h.is_broken and a.contrary_ms + min(:passed, 60000) >= h.lasts as turns
  from held h join alert a on a.name = h.rule
)
update alert set
  figure = t.name,
  meaning = t.meaning,
  value = t.value,
  now = case
    when t.is_share then printf('%.2f %%', t.value * 100)
    when t.value >= 172800 then printf('%.0f days', t.value / 86400.0)
    else printf('%.3f s', t.value)
  end,
  contrary_ms = case when t.turns or alert.is_on = t.is_broken then 0 else t.contrary end,
  is_on = case when t.turns then t.is_broken else alert.is_on end,
  since = case when t.turns then :now else alert.since end,
  has_turned = t.turns
from turning t
where t.rule = alert.name
returning case when has_turned then json_object(
  'alert', name, 'state', case when is_on then 'begun' else 'over' end, 'figure', figure,
  'value', value, 'at', since, 'text', 'alert ' || case when is_on then 'begun' else 'over' end
    || ': ' || name || ' (' || meaning || case when value is null then '' else ', now ' || now end
    || ')'
) end
