-- param: id integer
-- param: title text
-- param: slug text
-- param: summary text = ''
-- param: body text
-- param: tag integer[]
-- param: public boolean = false
-- require: claims.role = 'author' else /login

-- name: post :one
update post set title = trim(:title), slug = trim(:slug), summary = trim(:summary), body = :body, is_public = :public
where id = :id returning id as post_id;

-- name: without :exec
delete from post_tag where post_id = :id and tag_id not in (:tag);

-- name: tags :exec
insert into post_tag (post_id, tag_id) select :post_id, id from tag where id in (:tag) on conflict do nothing;

-- Without a line `-- invalid:` a refusal is a page, pages/4xx.html: a long text would not fit into what leads back.
-- redirect: /desk
