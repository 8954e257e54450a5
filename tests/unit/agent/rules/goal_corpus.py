"""Goals and how a reader would split them.

A line `> 0,1` stands for one need that builds on the first two, `>` for one that builds on none.
"""

from __future__ import annotations

from dataclasses import dataclass

CORPUS = """
# two dependent needs
Compute the total sales per region in sales.csv, then make a bar chart of it
>
> 0

# a picture of which nothing is said but its kind is of the figures before it
1. total sales per region in sales.csv
2. a chart
>
> 0

Total sales per region in sales.csv and a bar chart
>
> 0

Total sales per region in sales.csv, a line chart and a report
>
> 0
> 0,1

Compute the total sales per region in sales.csv. Then make a bar chart.
>
> 0

What is the average price in products.csv? Plot the prices by category from that file.
>
>

Fetch https://example.com/news.html and summarise it.
>
> 0

Find the files about budget in the workspace, then summarise them in two sentences each.
>
> 0

How many orders are there per month in orders.csv? Draw a line chart of the result.
>
> 0

Correlation between rainfall and pallets in shipments.csv, and a scatter plot of rainfall against pallets
>
>

Run this Python code: `print(sum(range(10)))` and calculate the square root of 144
>
>

Multiply 12 by 7 and convert the result to hexadecimal.
>
> 0

Find the three longest words in essay.txt; make a table of them.
>
> 0

First compute the median salary in staff.csv. Next, draw a histogram of it.
>
> 0

Get the text of www.example.org/about and count its words.
>
> 0

After computing the totals per region in sales.csv, make a chart of them.
>
> 0

Based on sales.csv, compute the revenue per quarter and visualise it as a pie chart.
>
> 0

Summarise minutes.md and turn the summary into an HTML page.
>
> 0

Rank the products in stock.csv by price, followed by a bar chart of the ranking.
>
> 0

Compute 15% of 240 and write a short note about it
>
> 0

Please calculate the growth rate per year in gdp.csv and then explain it in plain words.
>
> 0

Extract the table from https://example.com/stats and chart it.
>
> 0

Determine which customer spent most in orders.csv, then write them an email.
>
> 0

Use sales.csv to find the best month. From that, write a headline.
>
> 0

Download https://example.com/a.txt, then list the key phrases in it.
>
> 0

Run `print(sum(range(10)))` in Python and add 5 to the result.
>
> 0

# independent needs
Summarise notes.txt in three sentences and count its words; also what is 15% of 240?
>
>
>

Count the words in notes.txt and list the key phrases in it.
>
>

Convert 5 miles to kilometres and 3 pounds to grams; summarise readme.md as well.
>
>

What is 2 to the power of 16? How many words does notes.txt have?
>
>

Tell me the total revenue in sales.csv, and also summarise report.txt.
>
>

Find the most expensive product in products.csv as well as counting the lines in log.txt.
>
>

Calculate 3.5 * 2.25, and tell me what the capital of France is.
>
>

I need the average rating in reviews.csv. Could you also extract the headings of https://example.com/x.html?
>
>

Both summarise a.txt and count the words in b.txt.
>
>

What is the total revenue in sales.csv, and which region sold the most?
>
>

Search the workspace for "invoice"; compute 19% of 1,250.50.
>
>

Summarise notes.txt. Count its sentences. Extract its key phrases.
>
>
>

How many rows does data.csv have, and how many columns does it have?
>
>

# chains and joins
Compute the total sales per region in sales.csv, make a bar chart of it, and write a report of both
>
> 0
> 0,1

Load sales.csv, find the top 3 products, chart them, and write a report
>
> 0
> 0,1

I need the total revenue per region of sales.csv, a bar chart of it and a short report.
>
> 0
> 0,1

Find the mean temperature per month in weather.csv, plot it, and summarise the findings in a report.
>
> 0
> 0,1

Summarise notes.txt and compute the total of sales.csv, then write a report of both.
>
>
> 0,1

Read data.csv and compute revenue by product. Chart the top five. Finally write everything up in a report.
>
> 0
> 0,1

Compute revenue per month from sales.csv. From that, draw a line chart. Finally, write a report based on all of it.
>
> 0
> 0,1

Fetch https://example.com, summarise it, translate the summary into German, and write a report.
>
> 0
> 1
> 0,1,2

Count the words in a.txt, count the words in b.txt, and compare both.
>
>
> 0,1

Calculate 5! and 2^8, then compare the results and explain which is larger.
>
> 0
> 1

What are the sales per region in q1.csv? What are they in q2.csv? Compare the two.
>
>
> 0,1

Compute the mean of price in x.csv; compute the median of price in y.csv; write a report comparing the two results.
>
>
> 0,1

Find the largest order in orders.csv, convert its amount to euros at 0.9 and write a memo about everything.
>
> 0
> 0,1

# lists
1. Summarise notes.txt
2. Count the words in it
3. Write a report of the above
>
>
> 0,1

Please do the following:
- compute total revenue per region in sales.csv
- draw a bar chart of it
- write a short report
>
> 0
> 0,1

For sales.csv:
* total revenue per region
* a bar chart of it
>
> 0

Do these things: 1) count the words in a.txt 2) compute 12 * 12 3) write a report of both
>
>
> 0,1

(a) summarise notes.txt, (b) translate "hello world" to French
>
>

Steps:
1. Load sales.csv
2. Compute revenue per region
3. Chart it
>
>
> 1

Tasks:
• What is 7 * 8?
• What is the longest word in poem.txt?
>
>

First, summarise notes.txt. Second, compute 10% of 90. Third, report on both.
>
>
> 0,1

I want:
- the ten most frequent words of speech.txt
- a chart of them
>
> 0

# one need only
Find sales and profit per region in data/q1.csv
>

Compare North and South in sales.csv
>

Compute the mean and median of price in x.csv.
>

Compute both the mean and the median of price in x.csv
>

Translate "load the data and chart it, then stop" to German
>

Summarise this text: I went to the market. Then I bought apples and sold them. What a day!
>

Write a function to load data and plot it
>

Explain what recursion is and how it works
>

Prepare a briefing on sales.csv with total revenue per region, a chart of it and a report
>

What is 3.5 plus 4.25?
>

Compare and contrast Python and Ruby
>

Which products cost between 10 and 20 and sold more than 100 units in sales.csv?
>

Round 3.14159 to 2 decimals
>

Run this code:
```python
x = 1; y = 2
print(x, then)
```
>

Write a report on climate change. Include three sections and keep it short.
>

Suggest names for products, e.g. shoes, and services, i.e. repairs.
>

Compute the average price in sales.csv and round it to two decimals.
>

Write a summary of notes.txt and save it as summary.md
>

Show me revenue per month for North, South, East and West in sales.csv.
>

Search for files about cats and dogs.
>

Find all lines with "error, then retry" in app.log
>

Make a bar chart and a line chart.
>

Summarize the attached file.
>

How do I load and plot data?
>

Total revenue per region in sales.csv
>

If it rains tomorrow, tell me what to wear and pack.
>

List the files that mention alpha and beta.
>

# politeness and context
Hello! Could you please summarise notes.txt? Thank you!
>

Hi there, I'd like you to compute the total in sales.csv and then plot it. Thanks in advance.
>
> 0

Here is our sales file, sales.csv. Please compute revenue per region and chart it.
>
> 0

We have a file called notes.txt. Summarise it and count its words.
>
>

I want to know the number of employees in staff.csv and I need a chart of salaries by department from staff.csv.
>
>

Can you help me find the average of 3, 5 and 10, and convert it to a percentage of 50?
>
> 0

I would like a summary of notes.txt and a word count of it.
>

My data is in sales.csv. What is the best month? Which product sells best?
>
>

Would you kindly extract the key phrases from talk.txt? After that, make a table of them.
>
> 0

I'm preparing a meeting. Summarise agenda.txt, please, and work out 8 * 45 minutes in hours.
>
>

You are given orders.csv. Your task is to compute the total per customer and to write a report about it.
>
> 0

Let's analyse survey.csv: compute the mean score per group, draw a bar chart of that and report the findings.
>
> 0
> 0,1

# other joints
Summarise notes.txt, and in addition calculate 20% of 55.
>
>

Compute revenue per region in sales.csv before writing a report about it.
>
> 0

Compute the sum of amounts in a.csv — then chart the amounts per day in a.csv.
>
>

Once you have found the cheapest flight in flights.csv, convert its price to dollars at 1.1.
>
> 0

Chart revenue by month in sales.csv, and count the rows in it.
>
>

Translate greeting.txt into Spanish and French; then write a report of these.
>
> 0

Using https://example.com/data.html, list the headings, then count them.
>
> 0

Sort the names in names.txt alphabetically and remove duplicates, then count the remaining lines.
>
> 0

Summarise chapter1.txt and chapter2.txt, then compare them.
>
> 0

Compute 17 * 23, double it, and tell me whether the result is even.
>
> 0
> 1

Make a table of sales by region and a chart of profit by month from sales.csv.
>
>

Calculate the interest on $1,000 at 5% for 3 years, and make a chart of the balance per year.
>
>

Gather the headlines of https://example.com/ and https://example.org/, write a digest of them.
>
> 0

Analyse the text of speech.txt: its key phrases and its readability.
>

Give me the row count of a.csv plus a histogram of price from a.csv.
>
>

Check whether 97 is prime; if so, list the primes below it.
>
> 0

What's the mean of 4, 8 and 15? And what's their sum?
>
>

Read report.pdf. Summarise it. Then email the summary to ann@example.com.
>
> 0
> 1

Find out who wrote story.txt and when it was written.
>

Write a Python script that reads data.csv and prints its mean, run it, and report the output.
>
> 0
> 0,1

# how people type
need the avg unit price in inventory.csv + a histogram of it asap
>

what's the total amount in payments.csv and can you graph the amounts by month in payments.csv
>
>

pls count lines in server.log, then tell me how many of them contain "ERROR"
>
> 0

Which month had the lowest sales in sales.csv? Explain the result in one sentence.
>
> 0

Grab https://example.com/prices, pull out the table, graph it, and give me a one-page report with everything.
>
> 0
> 1
> 0,1,2

Take visits.csv and work out the visits per weekday. I'd also like a bar chart of that and a brief summary.
>
> 0
> 0,1

Based on survey.json, how many people answered "yes"? And what percentage is that of 250?
>
> 0

Summarise the first chapter of book.txt; do the same for the second chapter of book.txt.
>
>

I have two files, jan.csv and feb.csv. Compute the total revenue of each and plot the totals.
>
> 0

Work out 18% VAT on 349.99 and, separately, tell me how many days there are between 2024-01-15 and 2024-03-01.
>
>

Turn data.csv into a Markdown table, then into HTML.
>

Analyse feedback.txt for sentiment, chart the sentiment scores, and email both to boss@example.com
>
> 0
> 0,1

Compute the average order value in orders.csv, the number of orders, and the best customer, then write it all up as a report.
>
> 0

Give me key phrases and a three-sentence summary of article.txt, plus a report of both.
>
> 0

Find every TODO in main.py and list them by line number.
>
> 0

Please compare revenue in 2023 and 2024 using sales.csv, highlight the biggest change and draw a chart of the comparison.
>
> 0
> 0

Calculate the area of a circle with radius 3 cm, the volume of a cube with side 2 m, and convert both to inches.
>
> 0

Load measurements.csv. What is the standard deviation of temperature? Draw its distribution. Write a report.
>
> 0
> 0,1

From https://example.com/table.html get the table; from that table compute the mean age; then write a short note with the result.
>
> 0
> 1

Can you tell me the square root of 1764 and whether it is prime?
>
"""


@dataclass(frozen=True)
class Example:
    """A goal, and for each of its needs the earlier ones that it builds on."""

    goal: str
    uses: tuple[tuple[int, ...], ...]


def read_corpus(text: str) -> tuple[Example, ...]:
    """Parse the corpus; blocks are separated by empty lines, and a `#` line is a title."""
    return tuple(_example(block) for block in text.strip().split("\n\n"))


def _example(block: str) -> Example:
    goal, uses = [], []
    for line in block.splitlines():
        if line.startswith(">"):
            uses.append(tuple(int(use) for use in line[1:].split(",") if use.strip()))
        elif not line.startswith("# "):
            goal.append(line)
    return Example("\n".join(goal), tuple(uses))


EXAMPLES = read_corpus(CORPUS)
