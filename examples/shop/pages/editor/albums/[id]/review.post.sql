-- param: id integer
-- param: headline text
-- param: body text
-- require: claims.role = 'editor' else /login

-- name: author :one
select name as author from account where id = :claims.user;

-- name: review :one
insert into review (album_id, author, headline, body) values (:id, :author, trim(:headline), :body) returning id as review_id;

-- message: headline check = "A headline has 1 to 160 characters."
-- message: body check = "A review has 1 to 20,000 characters."
-- invalid: /editor/albums/:id?part=reviews#reviews
-- redirect: /albums/:id#review-:review_id
