-- param: id integer
-- param: page integer = 1

-- name: article :one
select id, title from article where id = :id;

-- name: comments :many
select id, who, at, body, account_id is not null as signed from comment where article_id = :id
order by at desc, id desc limit 20 offset (max(1, min(:page, 100000)) - 1) * 20;

-- name: paging :one
select max(1, min(:page, 100000)) as page, (count(*) + 19) / 20 as pages, count(*) as total
from comment where article_id = :id;
