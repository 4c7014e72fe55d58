-- param: id integer
-- param: headline text
-- param: body text
-- require: claims.role = 'editor' else /login

-- name: review :one
update review set headline = trim(:headline), body = :body where id = :id returning album_id;

-- message: headline check = "A headline has 1 to 160 characters."
-- message: body check = "A review has 1 to 20,000 characters."
-- invalid: /editor/reviews/:id
-- redirect: /albums/:album_id#review-:id
