-- param: id integer
-- require: claims.role = 'editor' else /login

-- name: review :one
delete from review where id = :id returning album_id;

-- redirect: /editor/albums/:album_id#reviews
