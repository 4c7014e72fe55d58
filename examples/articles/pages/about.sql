-- name: totals :one
select count(*) as articles, coalesce(sum(words), 0) as words from article;

-- name: licenses :many
select coalesce(license, 'not stated') as license, count(*) as articles
from article group by 1 order by articles desc, license limit 12;
