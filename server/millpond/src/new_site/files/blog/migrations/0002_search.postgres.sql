-- The words of the posts; 'simple' knows no language, and 'english' would find "walk" in "walks".

alter table posts add column words tsvector not null generated always as (
  to_tsvector('simple', coalesce(title, '') || ' ' || coalesce(body, ''))
) stored;

create index posts_by_word on posts using gin (words);
