-- live
-- param: id integer
-- param: page integer = 1

-- name: article :one
select id, title from article where id = :id;

-- name: comments :many
select id, who, at, body, account_id is not null as signed from comment where article_id = :id
order by at desc, id desc limit 20
offset (case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end - 1) * 20;

-- name: paging :one
select case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end as page,
  (count(*) + 19) / 20 as pages, count(*) as total
from comment where article_id = :id;
