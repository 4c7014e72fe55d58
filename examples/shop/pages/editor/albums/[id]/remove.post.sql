-- param: id integer
-- param: track integer[]
-- require: claims.role = 'editor' else /login

-- A track that was sold stays: 409, and none is deleted.
-- name: remove :exec
delete from track where album_id = :id and id in (:track);

-- redirect: /editor/albums/:id#tracks
