-- param: page integer = 1

-- name: threads :many
select t.id, t.title, t.opened_at, count(*) - 1 as replies, max(p.at) as last_at
from thread t join post p on p.thread_id = t.id
group by t.id order by last_at desc, t.id desc limit 30
offset (case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end - 1) * 30;

-- name: paging :one
select case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end as page,
  (count(*) + 29) / 30 as pages, count(*) as total from thread;
