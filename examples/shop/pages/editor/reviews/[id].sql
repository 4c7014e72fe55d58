-- param: id integer
-- require: claims.role = 'editor' else /login

-- name: review :one
select r.id, r.album_id, r.headline, r.body, a.title from review r join album a on a.id = r.album_id where r.id = :id;
