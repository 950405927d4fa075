-- One statement a line, over the shop of tests/python/sql_support.py; an administrator may say all of them.
SELECT count(*) FROM Customers
SELECT NAME, City FROM customers WHERE city = "Oslo" ORDER BY Name DESC LIMIT 3;
SELECT T1.name, sum(T2.total) FROM customers AS T1 JOIN orders AS T2 ON T1.id = T2.customer_id GROUP BY T1.id HAVING count(*) > 1
SELECT avg(price), max ( quantity ), min(price) FROM items WHERE product LIKE "%pen%" OR product NOT LIKE 'i_k'
SELECT DISTINCT customers.City FROM customers EXCEPT SELECT c.city FROM customers c WHERE c.id IN (SELECT customer_id FROM orders)
SELECT name FROM customers WHERE id = (SELECT customer_id FROM orders ORDER BY total DESC LIMIT 1)
SELECT "card number", [ship to] FROM customers, orders WHERE orders.customer_id = customers.id AND `ship to` != ''
SELECT T1.`card number`, T2."ship to" FROM customers T1 LEFT JOIN orders T2 ON T1.id == T2.customer_id
SELECT CAST(sum(CASE WHEN total > 10 THEN 1 ELSE 0 END) AS REAL) * 100 / count(id) AS percentage FROM orders
SELECT strftime('%Y', placed) AS year, count(*) AS total FROM orders GROUP BY year ORDER BY total DESC, 1
SELECT iif(total > 10, 'big', 'small') size, round(total, 2) FROM orders WHERE placed BETWEEN '2024-01-01' AND '2024-12-31'
SELECT substr(name, 1, instr(name, 'n')), length(name), upper(name) || ' of ' || city FROM customers
SELECT product, rank() OVER (PARTITION BY order_id ORDER BY price DESC) AS place FROM items
WITH totals AS (SELECT customer_id, sum(total) AS s FROM orders GROUP BY customer_id) SELECT name, s FROM totals JOIN customers ON customers.id = totals.customer_id
SELECT name FROM customers WHERE NOT EXISTS (SELECT * FROM orders WHERE orders.customer_id = customers.id)
SELECT id FROM orders UNION ALL SELECT amount FROM salaries INTERSECT SELECT order_id FROM items
SELECT k.desc, k."left", k."order", k.[a"b] FROM key AS k WHERE k.left IS NOT NULL
SELECT o.id FROM big_orders AS o INNER JOIN orders ON o.id = orders.id WHERE orders.total IS NOT 5
SELECT count(DISTINCT city), group_concat(name, ', ') FROM customers WHERE id NOT IN (1, 2) AND name IS NULL
SELECT main.customers.name, customers.* FROM main.customers AS customers_2, customers
INSERT INTO orders (customer_id, total) VALUES (1, 9.5), (2, 11) RETURNING id
UPDATE customers SET city = 'Rome', name = trim(name) WHERE id IN (SELECT customer_id FROM orders)
DELETE FROM items WHERE order_id = 3 AND price < 1
SELECT json_each.*, CAST(name AS unsigned big int), c.* FROM customers c, json_each('[1, 2]')
