insert into sample (
  grain, at, span_ms, requests, pages, hits, misses, waits, bypassed, made, fill_us, database_us,
  refused, shed, bytes_out, successes, redirects, client_errors, server_errors, crawlers, cpu_ms,
  busy_ms, connections, feed_age_ms, resident, stored, entries, streams
)
select
  g.seconds, :now - :now % g.seconds, :span_ms,
  :figures ->> 'requests', :figures ->> 'pages', :figures ->> 'hits', :figures ->> 'misses',
  :figures ->> 'waits', :figures ->> 'bypassed', :figures ->> 'made', :figures ->> 'fill_us',
  :figures ->> 'database_us', :figures ->> 'refused', :figures ->> 'shed',
  :figures ->> 'bytes_out', :figures ->> 'successes', :figures ->> 'redirects',
  :figures ->> 'client_errors', :figures ->> 'server_errors', :figures ->> 'crawlers',
  :figures ->> 'cpu_ms', :figures ->> 'busy_ms', :figures ->> 'connections',
  :figures ->> 'feed_age_ms', :figures ->> 'resident', :figures ->> 'stored',
  :figures ->> 'entries', :figures ->> 'streams'
from grain g
where true
on conflict (grain, at) do update set
  span_ms = span_ms + excluded.span_ms,
  requests = requests + excluded.requests,
  pages = pages + excluded.pages,
  hits = hits + excluded.hits,
  misses = misses + excluded.misses,
  waits = waits + excluded.waits,
  bypassed = bypassed + excluded.bypassed,
  made = made + excluded.made,
  fill_us = fill_us + excluded.fill_us,
  database_us = database_us + excluded.database_us,
  refused = refused + excluded.refused,
  shed = shed + excluded.shed,
  bytes_out = bytes_out + excluded.bytes_out,
  successes = coalesce(successes + excluded.successes, successes, excluded.successes),
  redirects = coalesce(redirects + excluded.redirects, redirects, excluded.redirects),
  client_errors =
    coalesce(client_errors + excluded.client_errors, client_errors, excluded.client_errors),
  server_errors =
    coalesce(server_errors + excluded.server_errors, server_errors, excluded.server_errors),
  crawlers = coalesce(crawlers + excluded.crawlers, crawlers, excluded.crawlers),
  cpu_ms = coalesce(cpu_ms + excluded.cpu_ms, cpu_ms, excluded.cpu_ms),
  busy_ms = coalesce(busy_ms + excluded.busy_ms, busy_ms, excluded.busy_ms),
  connections = coalesce(max(connections, excluded.connections), excluded.connections),
  feed_age_ms = coalesce(max(feed_age_ms, excluded.feed_age_ms), excluded.feed_age_ms),
  resident = coalesce(max(resident, excluded.resident), excluded.resident),
  stored = coalesce(max(stored, excluded.stored), excluded.stored),
  entries = coalesce(max(entries, excluded.entries), excluded.entries),
  streams = coalesce(max(streams, excluded.streams), excluded.streams)
