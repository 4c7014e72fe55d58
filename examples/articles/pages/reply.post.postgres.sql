-- param: id integer
-- param: who text
-- param: body text

-- No such thread: 404, and nothing is written.
-- name: thread :one
select id from thread where id = :id;

-- name: post :one
insert into post (thread_id, who, body)
values (:id, btrim(:who), btrim(replace(:body, chr(13), ''), E'\t\n '))
returning id as post_id;

-- The thread is shown in pages of 40; the answer is on the last.
-- name: place :one
select (count(*) + 39) / 40 as last_page from post where thread_id = :id;

-- redirect: /board/:id?page=:last_page#p:post_id
