-- param: id integer
-- param: headline text
-- param: body text
-- require: claims.role = 'editor' else /login

-- name: review :one
update review set headline = trim(:headline), body = :body where id = :id returning album_id;

-- redirect: /albums/:album_id#review-:id
