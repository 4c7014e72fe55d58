-- param: page integer = 1

-- name: authors :many
select u.slug, u.name, count(*) as articles
from author u join article_author x on x.author_id = u.id
group by u.id order by articles desc, u.name limit 60 offset (max(1, min(:page, 100000)) - 1) * 60;

-- name: paging :one
select max(1, min(:page, 100000)) as page, (count(distinct author_id) + 59) / 60 as pages, count(distinct author_id) as total
from article_author;
