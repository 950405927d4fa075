SELECT id, title FROM books WHERE price < 20 ORDER BY title
select b.title, a.name from books b join authors as a on a.id = b.author_id where a.country = 'PT' limit 10
SELECT genre, count(*) AS n, avg(price) FROM books GROUP BY genre HAVING count(*) >= 3 ORDER BY n DESC;
SELECT DISTINCT city FROM members WHERE joined BETWEEN DATE '2023-01-01' AND DATE '2023-12-31' AND city NOT LIKE 'B%'
INSERT INTO loans (book_id, member_id, due) VALUES (17, 4, '2024-06-30'), (23, 9, NULL)
UPDATE books SET price = round(price * 1.05, 2), updated = now() WHERE genre IN ('art', 'music') AND price IS NOT NULL
DELETE FROM loans WHERE returned = TRUE AND NOT EXISTS (SELECT 1 FROM fines f WHERE f.loan_id = loans.id)
WITH late AS (SELECT member_id, count(*) AS n FROM loans WHERE due < current_date GROUP BY member_id) SELECT m.name, late.n FROM members m LEFT JOIN late ON late.member_id = m.id
SELECT title, CASE WHEN pages > 800 THEN 'long' WHEN pages > 200 THEN 'usual' ELSE 'short' END AS length FROM books
SELECT name, rank() OVER (PARTITION BY city ORDER BY joined) FROM members UNION ALL SELECT name, 0 FROM staff
select cast(sum(amount) as numeric(10, 2)) from fines where paid = false or waived is null
SELECT "Shelf No", 'O''Hara' || ', ' || name FROM public.authors WHERE (id, country) IN (SELECT author_id, 'IE' FROM books) -- Irish
