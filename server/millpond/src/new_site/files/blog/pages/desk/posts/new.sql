-- require: claims.role = 'author' else /login

-- name: tags :many
select id, name from tag order by lower(name), id;
