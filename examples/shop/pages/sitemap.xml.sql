-- name: albums :many
select id from album order by id limit 49000;

-- name: artists :many
select id from artist order by id limit 900;
