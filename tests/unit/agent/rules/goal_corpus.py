"""Goals and how a reader would split them.

A line `> fragments` stands for one need: all fragments, separated by `|`, occur in its text (case is ignored), and none that is
prefixed by `!`. A number list in front (`0,1 > …`) names the earlier needs it uses.
"""

from __future__ import annotations

from dataclasses import dataclass

CORPUS = """
# two dependent needs
Compute the total sales per region in sales.csv, then make a bar chart of it
> compute the total sales per region in sales.csv | !chart
0 > bar chart of the total sales per region

What is the average price in products.csv? Plot the prices by category from that file.
> average price in products.csv
> plot the prices by category | products.csv

Fetch https://example.com/news.html and summarise it.
> fetch https://example.com/news.html
0 > summarise | example.com

Find the files about budget in the workspace, then summarise them in two sentences each.
> find the files about budget
0 > summarise | two sentences | !them

How many orders are there per month in orders.csv? Draw a line chart of the result.
> how many orders are there per month in orders.csv
0 > line chart | !the result

Correlation between rainfall and pallets in shipments.csv, and a scatter plot of rainfall against pallets
> correlation between rainfall and pallets in shipments.csv | !plot
> scatter plot of rainfall against pallets

Run this Python code: `print(sum(range(10)))` and calculate the square root of 144
> run this python code: `print(sum(range(10)))` | !root
> calculate the square root of 144 | !python

Multiply 12 by 7 and convert the result to hexadecimal.
> multiply 12 by 7
0 > convert | hexadecimal

Find the three longest words in essay.txt; make a table of them.
> three longest words in essay.txt
0 > table of the three longest words

First compute the median salary in staff.csv. Next, draw a histogram of it.
> compute the median salary in staff.csv
0 > histogram of the median salary

Get the text of www.example.org/about and count its words.
> text of www.example.org/about
0 > count | words

After computing the totals per region in sales.csv, make a chart of them.
> compute the totals per region in sales.csv
0 > chart of the totals per region

Based on sales.csv, compute the revenue per quarter and visualise it as a pie chart.
> revenue per quarter | sales.csv
0 > visualise the revenue per quarter | pie chart

Summarise minutes.md and turn the summary into an HTML page.
> summarise minutes.md
0 > turn | html page

Rank the products in stock.csv by price, followed by a bar chart of the ranking.
> rank the products in stock.csv by price
0 > bar chart of the ranking

Compute 15% of 240 and write a short note about it
> 15% of 240
0 > note about

Please calculate the growth rate per year in gdp.csv and then explain it in plain words.
> growth rate per year in gdp.csv
0 > explain the growth rate

Extract the table from https://example.com/stats and chart it.
> extract the table from https://example.com/stats
0 > chart the table

Determine which customer spent most in orders.csv, then write them an email.
> which customer spent most in orders.csv
0 > email

Use sales.csv to find the best month. From that, write a headline.
> best month | sales.csv
0 > headline

Download https://example.com/a.txt, then list the key phrases in it.
> download https://example.com/a.txt
0 > key phrases

Run `print(sum(range(10)))` in Python and add 5 to the result.
> run `print(sum(range(10)))`
0 > add 5

# independent needs
Summarise notes.txt in three sentences and count its words; also what is 15% of 240?
> summarise notes.txt in three sentences
> count | words | notes.txt
> 15% of 240

Count the words in notes.txt and list the key phrases in it.
> count the words in notes.txt
> key phrases in notes.txt

Convert 5 miles to kilometres and 3 pounds to grams; summarise readme.md as well.
> convert 5 miles to kilometres | 3 pounds to grams
> summarise readme.md

What is 2 to the power of 16? How many words does notes.txt have?
> 2 to the power of 16
> how many words does notes.txt have

Tell me the total revenue in sales.csv, and also summarise report.txt.
> total revenue in sales.csv
> summarise report.txt

Find the most expensive product in products.csv as well as counting the lines in log.txt.
> most expensive product in products.csv
> log.txt

Calculate 3.5 * 2.25, and tell me what the capital of France is.
> calculate 3.5 * 2.25
> capital of france

I need the average rating in reviews.csv. Could you also extract the headings of https://example.com/x.html?
> average rating in reviews.csv
> headings of https://example.com/x.html

Both summarise a.txt and count the words in b.txt.
> summarise a.txt
> count the words in b.txt

What is the total revenue in sales.csv, and which region sold the most?
> total revenue in sales.csv
> which region sold the most | sales.csv

Search the workspace for "invoice"; compute 19% of 1,250.50.
> search the workspace for "invoice"
> 19% of 1,250.50

Summarise notes.txt. Count its sentences. Extract its key phrases.
> summarise notes.txt
> sentences | notes.txt
> key phrases | notes.txt

How many rows does data.csv have, and how many columns does it have?
> how many rows does data.csv have
> how many columns | data.csv

# chains and joins
Compute the total sales per region in sales.csv, make a bar chart of it, and write a report of both
> total sales per region in sales.csv
0 > bar chart
0,1 > report of both results

Load sales.csv, find the top 3 products, chart them, and write a report
> top 3 products in sales.csv | !load
0 > chart the top 3 products
0,1 > report

I need the total revenue per region of sales.csv, a bar chart of it and a short report.
> total revenue per region of sales.csv
0 > bar chart of
0,1 > short report

Find the mean temperature per month in weather.csv, plot it, and summarise the findings in a report.
> mean temperature per month in weather.csv
0 > plot the mean temperature
0,1 > report

Summarise notes.txt and compute the total of sales.csv, then write a report of both.
> summarise notes.txt
> total of sales.csv
0,1 > report of both results

Read data.csv and compute revenue by product. Chart the top five. Finally write everything up in a report.
> revenue by product | data.csv
0 > chart
0,1 > report

Compute revenue per month from sales.csv. From that, draw a line chart. Finally, write a report based on all of it.
> revenue per month from sales.csv
0 > line chart
0,1 > report

Fetch https://example.com, summarise it, translate the summary into German, and write a report.
> fetch https://example.com
0 > summarise
1 > translate | german
0,1,2 > report

Count the words in a.txt, count the words in b.txt, and compare both.
> words in a.txt
> words in b.txt
0,1 > compare both

Calculate 5! and 2^8, then compare the results and explain which is larger.
> calculate 5! and 2^8
0 > compare
1 > which is larger

What are the sales per region in q1.csv? What are they in q2.csv? Compare the two.
> sales per region in q1.csv
> q2.csv
0,1 > compare both results

Compute the mean of price in x.csv; compute the median of price in y.csv; write a report comparing the two results.
> mean of price in x.csv
> median of price in y.csv
0,1 > report

Find the largest order in orders.csv, convert its amount to euros at 0.9 and write a memo about everything.
> largest order in orders.csv
0 > convert | amount | 0.9
0,1 > memo

# lists
1. Summarise notes.txt
2. Count the words in it
3. Write a report of the above
> summarise notes.txt
> words in notes.txt
0,1 > report

Please do the following:
- compute total revenue per region in sales.csv
- draw a bar chart of it
- write a short report
> total revenue per region in sales.csv
0 > bar chart of total revenue
0,1 > short report

For sales.csv:
* total revenue per region
* a bar chart of it
> total revenue per region | sales.csv
0 > bar chart of total revenue per region

Do these things: 1) count the words in a.txt 2) compute 12 * 12 3) write a report of both
> words in a.txt
> 12 * 12
0,1 > report of both results

(a) summarise notes.txt, (b) translate "hello world" to French
> summarise notes.txt
> translate "hello world" to french

Steps:
1. Load sales.csv
2. Compute revenue per region
3. Chart it
> revenue per region | sales.csv
0 > chart

Tasks:
• What is 7 * 8?
• What is the longest word in poem.txt?
> 7 * 8
> longest word in poem.txt

First, summarise notes.txt. Second, compute 10% of 90. Third, report on both.
> summarise notes.txt
> 10% of 90
0,1 > report on both

I want:
- the ten most frequent words of speech.txt
- a chart of them
> ten most frequent words of speech.txt
0 > chart of the ten most frequent words

# one need only
Find sales and profit per region in data/q1.csv
> sales and profit per region in data/q1.csv

Compare North and South in sales.csv
> compare north and south in sales.csv

Compute the mean and median of price in x.csv.
> mean and median of price in x.csv

Compute both the mean and the median of price in x.csv
> both the mean and the median

Translate "load the data and chart it, then stop" to German
> "load the data and chart it, then stop"

Summarise this text: I went to the market. Then I bought apples and sold them. What a day!
> i went to the market. then i bought apples and sold them. what a day!

Write a function to load data and plot it
> write a function to load data and plot it

Explain what recursion is and how it works
> what recursion is and how it works

Prepare a briefing on sales.csv with total revenue per region, a chart of it and a report
> briefing on sales.csv | a chart of it and a report

What is 3.5 plus 4.25?
> 3.5 plus 4.25

Compare and contrast Python and Ruby
> compare and contrast python and ruby

Which products cost between 10 and 20 and sold more than 100 units in sales.csv?
> between 10 and 20 and sold more than 100 units

Round 3.14159 to 2 decimals
> round 3.14159 to 2 decimals

Run this code:
```python
x = 1; y = 2
print(x, then)
```
> run this code | print(x, then)

Write a report on climate change. Include three sections and keep it short.
> report on climate change | three sections

Suggest names for products, e.g. shoes, and services, i.e. repairs.
> e.g. shoes, and services, i.e. repairs

Compute the average price in sales.csv and round it to two decimals.
> average price in sales.csv | round it to two decimals

Write a summary of notes.txt and save it as summary.md
> summary of notes.txt | summary.md

Show me revenue per month for North, South, East and West in sales.csv.
> north, south, east and west

Search for files about cats and dogs.
> cats and dogs

Find all lines with "error, then retry" in app.log
> "error, then retry" in app.log

Make a bar chart and a line chart.
> bar chart and a line chart

Summarize the attached file.
> summarize the attached file

How do I load and plot data?
> how do i load and plot data

Total revenue per region in sales.csv
> total revenue per region in sales.csv

If it rains tomorrow, tell me what to wear and pack.
> if it rains tomorrow

List the files that mention alpha and beta.
> mention alpha and beta

# politeness and context
Hello! Could you please summarise notes.txt? Thank you!
> summarise notes.txt | !hello | !thank

Hi there, I'd like you to compute the total in sales.csv and then plot it. Thanks in advance.
> compute the total in sales.csv
0 > plot the total

Here is our sales file, sales.csv. Please compute revenue per region and chart it.
> revenue per region | sales.csv
0 > chart revenue per region

We have a file called notes.txt. Summarise it and count its words.
> summarise notes.txt
> words | notes.txt

I want to know the number of employees in staff.csv and I need a chart of salaries by department from staff.csv.
> number of employees in staff.csv
> chart of salaries by department | staff.csv

Can you help me find the average of 3, 5 and 10, and convert it to a percentage of 50?
> average of 3, 5 and 10
0 > convert | percentage of 50

I would like a summary of notes.txt and a word count of it.
> summary of notes.txt | word count

My data is in sales.csv. What is the best month? Which product sells best?
> sales.csv | best month
> which product sells best | sales.csv

Would you kindly extract the key phrases from talk.txt? After that, make a table of them.
> key phrases from talk.txt
0 > table of the key phrases

I'm preparing a meeting. Summarise agenda.txt, please, and work out 8 * 45 minutes in hours.
> summarise agenda.txt
> 8 * 45 minutes in hours

You are given orders.csv. Your task is to compute the total per customer and to write a report about it.
> total per customer | orders.csv
0 > report

Let's analyse survey.csv: compute the mean score per group, draw a bar chart of that and report the findings.
> survey.csv | mean score per group
0 > bar chart
0,1 > report

# other joints
Summarise notes.txt, and in addition calculate 20% of 55.
> summarise notes.txt
> 20% of 55

Compute revenue per region in sales.csv before writing a report about it.
> revenue per region in sales.csv
0 > report about

Compute the sum of amounts in a.csv — then chart the amounts per day in a.csv.
> sum of amounts in a.csv
> amounts per day in a.csv

Once you have found the cheapest flight in flights.csv, convert its price to dollars at 1.1.
> cheapest flight in flights.csv
0 > convert | price | 1.1

Chart revenue by month in sales.csv, and count the rows in it.
> chart revenue by month in sales.csv
> count the rows in sales.csv

Translate greeting.txt into Spanish and French; then write a report of these.
> translate greeting.txt into spanish and french
0 > report

Using https://example.com/data.html, list the headings, then count them.
> headings | https://example.com/data.html
0 > count the list of the headings

Sort the names in names.txt alphabetically and remove duplicates, then count the remaining lines.
> sort the names in names.txt
0 > remove duplicates
1 > remaining lines

Summarise chapter1.txt and chapter2.txt, then compare them.
> chapter1.txt and chapter2.txt
0 > compare

Compute 17 * 23, double it, and tell me whether the result is even.
> 17 * 23
0 > double 17 * 23
1 > even

Make a table of sales by region and a chart of profit by month from sales.csv.
> table of sales by region | sales.csv
> chart of profit by month from sales.csv

Calculate the interest on $1,000 at 5% for 3 years, and make a chart of the balance per year.
> $1,000 at 5% for 3 years
> chart of the balance per year

Gather the headlines of https://example.com/ and https://example.org/, write a digest of them.
> https://example.com/ | https://example.org/
0 > digest

Analyse the text of speech.txt: its key phrases and its readability.
> speech.txt | readability

Give me the row count of a.csv plus a histogram of price from a.csv.
> row count of a.csv
> histogram of price from a.csv

Check whether 97 is prime; if so, list the primes below it.
> 97 is prime
0 > list the primes

What's the mean of 4, 8 and 15? And what's their sum?
> mean of 4, 8 and 15
> sum of 4, 8 and 15

Read report.pdf. Summarise it. Then email the summary to ann@example.com.
> summarise | report.pdf
0 > email | ann@example.com

Find out who wrote story.txt and when it was written.
> who wrote story.txt | when it was written

Write a Python script that reads data.csv and prints its mean, run it, and report the output.
> script that reads data.csv and prints its mean
0 > run
0,1 > report

# how people type
need the avg unit price in inventory.csv + a histogram of it asap
> avg unit price in inventory.csv

what's the total amount in payments.csv and can you graph the amounts by month in payments.csv
> total amount in payments.csv
> graph the amounts by month in payments.csv

pls count lines in server.log, then tell me how many of them contain "ERROR"
> count lines in server.log
0 > how many of | contain "error"

Which month had the lowest sales in sales.csv? Explain the result in one sentence.
> which month had the lowest sales in sales.csv
0 > explain | one sentence

Grab https://example.com/prices, pull out the table, graph it, and give me a one-page report with everything.
> https://example.com/prices
0 > table
1 > graph
0,1,2 > one-page report

Take visits.csv and work out the visits per weekday. I'd also like a bar chart of that and a brief summary.
> visits per weekday | visits.csv
0 > bar chart of the visits per weekday
0,1 > brief summary

Based on survey.json, how many people answered "yes"? And what percentage is that of 250?
> survey.json | how many people answered "yes"
0 > percentage | 250

Summarise the first chapter of book.txt; do the same for the second chapter of book.txt.
> first chapter of book.txt
> second chapter of book.txt

I have two files, jan.csv and feb.csv. Compute the total revenue of each and plot the totals.
> total revenue of | jan.csv
0 > plot

Work out 18% VAT on 349.99 and, separately, tell me how many days there are between 2024-01-15 and 2024-03-01.
> 18% vat on 349.99
> between 2024-01-15 and 2024-03-01

Turn data.csv into a Markdown table, then into HTML.
> data.csv | markdown table

Analyse feedback.txt for sentiment, chart the sentiment scores, and email both to boss@example.com
> feedback.txt for sentiment
0 > chart the sentiment scores
0,1 > email both results to boss@example.com

Compute the average order value in orders.csv, the number of orders, and the best customer, then write it all up as a report.
> average order value in orders.csv
0 > report

Give me key phrases and a three-sentence summary of article.txt, plus a report of both.
> key phrases and a three-sentence summary of article.txt
0 > report of

Find every TODO in main.py and list them by line number.
> todo in main.py
0 > list | by line number

Please compare revenue in 2023 and 2024 using sales.csv, highlight the biggest change and draw a chart of the comparison.
> revenue in 2023 and 2024 using sales.csv
0 > biggest change
0 > chart of the comparison

Calculate the area of a circle with radius 3 cm, the volume of a cube with side 2 m, and convert both to inches.
> area of a circle with radius 3 cm | volume of a cube with side 2 m
0 > convert

Load measurements.csv. What is the standard deviation of temperature? Draw its distribution. Write a report.
> standard deviation of temperature | measurements.csv
0 > distribution
0,1 > report

From https://example.com/table.html get the table; from that table compute the mean age; then write a short note with the result.
> https://example.com/table.html
0 > mean age
1 > short note

Can you tell me the square root of 1764 and whether it is prime?
> square root of 1764 | whether it is prime
"""


@dataclass(frozen=True)
class Expected:
    """One need as a reader sees it."""

    fragments: tuple[str, ...]
    absent: tuple[str, ...]
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """A goal and its needs."""

    goal: str
    needs: tuple[Expected, ...]


def read_corpus(text: str) -> tuple[Example, ...]:
    """Parse the corpus; blocks are separated by empty lines, and a `#` line is a title."""
    return tuple(_example(block) for block in text.strip().split("\n\n"))


def _example(block: str) -> Example:
    goal, needs = [], []
    for line in block.splitlines():
        uses, mark, fragments = line.partition("> ")
        if mark and not uses.strip(" ,0123456789"):
            parts = [part.strip().lower() for part in fragments.split(" | ")]
            needs.append(
                Expected(
                    tuple(part for part in parts if not part.startswith("!")),
                    tuple(part[1:] for part in parts if part.startswith("!")),
                    tuple(int(use) for use in uses.strip().split(",") if use),
                )
            )
        elif not line.startswith("# "):
            goal.append(line)
    return Example("\n".join(goal), tuple(needs))


EXAMPLES = read_corpus(CORPUS)
