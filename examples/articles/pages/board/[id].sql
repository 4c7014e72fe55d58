-- live
-- param: id integer
-- param: page integer = 1

-- name: thread :one
select id, title, opened_at from thread where id = :id;

-- name: posts :many
select id, who, at, body from post where thread_id = :id
order by id limit 40
offset (case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end - 1) * 40;

-- name: paging :one
select case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end as page,
  (count(*) + 39) / 40 as pages, count(*) as total
from post where thread_id = :id;
