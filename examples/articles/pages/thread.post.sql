-- param: title text
-- param: who text
-- param: body text

-- name: thread :one
insert into thread (title) values (trim(:title)) returning id as thread_id;

-- name: post :exec
insert into post (thread_id, who, body)
values (:thread_id, trim(:who), trim(replace(:body, char(13), ''), char(9, 10, 32)));

-- redirect: /board/:thread_id
