-- A folder of documents in another, such as reference/site.
-- name: doc :one
select folder, slug, title, body from docs where slug = :slug and folder = :folder || '/' || :part;
