-- require: claims.role = 'editor' else /login

-- name: artists :many
select id, name from artist order by lower(name), id;
