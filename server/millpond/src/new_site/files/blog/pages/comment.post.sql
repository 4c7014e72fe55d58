-- param: slug text
-- param: who text
-- param: body text

-- No such post: 404, and nothing is written.
-- name: post :one
select id as post_id from post where slug = :slug and is_public;

-- It waits until an author lets it through.
-- name: comment :exec
insert into comment (post_id, who, body) values (:post_id, trim(:who), trim(:body));

-- message: who check = "A name has 1 to 80 characters."
-- message: body check = "A comment has 1 to 4,000 characters."
-- invalid: /posts/:slug#comments
-- redirect: /posts/:slug?sent=true#comments
