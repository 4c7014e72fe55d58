-- param: id integer
-- param: page integer = 1

-- name: thread :one
select id, title, opened_at from thread where id = :id;

-- name: posts :many
select id, who, at, body from post where thread_id = :id
order by id limit 40 offset (max(1, min(:page, 100000)) - 1) * 40;

-- name: paging :one
select max(1, min(:page, 100000)) as page, (count(*) + 39) / 40 as pages, count(*) as total
from post where thread_id = :id;
