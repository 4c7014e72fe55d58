-- param: id integer
-- require: claims.role = 'editor' else /login

-- name: album :one
delete from album where id = :id returning cover as old_cover;

-- delete-file: :old_cover
-- redirect: /editor
