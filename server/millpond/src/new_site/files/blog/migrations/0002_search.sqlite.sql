-- The words of the posts. The triggers keep the index as the table is. An index of words finds a row by its number alone, so
-- each post has one, which stays.

create table word_rows (id integer primary key, slug text not null unique);

create virtual table words using fts5 (slug unindexed, title, body, tokenize = 'unicode61 remove_diacritics 2');

create trigger words_insert after insert on posts begin
  insert into word_rows (slug) values (new.slug);
  insert into words (rowid, slug, title, body)
  values ((select id from word_rows where slug = new.slug), new.slug, new.title, new.body);
end;

create trigger words_delete after delete on posts begin
  delete from words where rowid = (select id from word_rows where slug = old.slug);
  delete from word_rows where slug = old.slug;
end;

create trigger words_update after update on posts begin
  update word_rows set slug = new.slug where slug = old.slug;
  delete from words where rowid = (select id from word_rows where slug = new.slug);
  insert into words (rowid, slug, title, body)
  values ((select id from word_rows where slug = new.slug), new.slug, new.title, new.body);
end;
