-- param: title text
-- param: who text
-- param: body text

-- name: thread :one
insert into thread (title) values (btrim(:title)) returning id as thread_id;

-- name: post :exec
insert into post (thread_id, who, body)
values (:thread_id, btrim(:who), btrim(replace(:body, chr(13), ''), E'\t\n '));

-- redirect: /board/:thread_id
