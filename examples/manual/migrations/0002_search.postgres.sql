-- The words of the documents.

alter table docs add column words tsvector not null generated always as (
  setweight(to_tsvector('english', coalesce(title, '')), 'A') || to_tsvector('english', coalesce(body, ''))
) stored;

create index docs_by_word on docs using gin (words);
