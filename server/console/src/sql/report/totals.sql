-- Sums of the time, with the first and the last day of it.
select json_object(
  'first_day', date(min(at), 'unixepoch'), 'last_day', date(max(at), 'unixepoch'),
  'requests', sum(requests), 'pages', sum(pages), 'hits', sum(hits), 'made', sum(made),
  'fill_us', sum(fill_us), 'database_us', sum(database_us), 'refused', sum(refused + shed),
  'bytes', sum(bytes_out), 'crawlers', sum(crawlers), 'cpu_ms', sum(cpu_ms),
  '2xx', sum(successes), '3xx', sum(redirects), '4xx', sum(client_errors), '5xx', sum(server_errors)
)
from sample
where grain = 3600 and at >= :from and at < :till
having count(*) > 0
