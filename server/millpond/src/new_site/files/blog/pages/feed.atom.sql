-- name: posts :many
select slug, title, date, summary, body from posts where draft is not true and date is not null order by date desc, slug limit 20;
