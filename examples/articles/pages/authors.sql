-- param: page integer = 1

-- name: authors :many
select u.slug, u.name, count(*) as articles
from author u join article_author x on x.author_id = u.id
group by u.id order by articles desc, u.name limit 60
offset (case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end - 1) * 60;

-- name: paging :one
select case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end as page,
  (count(distinct author_id) + 59) / 60 as pages, count(distinct author_id) as total
from article_author;
