-- param: id integer
-- require: claims.role = 'editor' else /login

-- name: album :one
delete from album where id = :id returning id;

-- redirect: /editor
