-- param: id integer
-- require: claims.role = 'editor' else /login

-- name: album :one
delete from album where id = :id returning cover;

-- delete-file: album.cover
-- redirect: /editor
