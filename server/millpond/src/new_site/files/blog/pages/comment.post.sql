-- param: id integer
-- param: who text
-- param: body text

-- No such post: 404, and nothing is written.
-- name: post :one
select slug from post where id = :id and is_public;

-- It waits until an author lets it through.
-- name: comment :exec
insert into comment (post_id, who, body) values (:id, trim(:who), trim(:body));

-- redirect: /posts/:slug?sent=true#comments
